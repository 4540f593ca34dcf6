-- Declared as ksqlDB's users write it.
CREATE STREAM IF NOT EXISTS clicks (
  id INTEGER KEY, page VARCHAR, price DECIMAL(10, 2), paid NUMERIC, ok BOOLEAN,
  tags ARRAY<STRING>, scores MAP<STRING, DOUBLE>,
  place STRUCT<street STRING, at: STRUCT<lat DOUBLE, `lon g` DOUBLE>>,
  seen TIMESTAMP, raw BYTES, `odd name` BIGINT
) WITH (kafka_topic='page-clicks', value_format='JSON', key_format='KAFKA', partitions=3,
        timestamp='seen', watermark='1 minute 30 seconds');

CREATE TABLE names (id BIGINT PRIMARY KEY, name STRING) WITH (VALUE_FORMAT='kafka', partitions='2');

CREATE TABLE pairs (a INT PRIMARY KEY, b DATE PRIMARY KEY, c FLOAT) WITH (key_format='json');

CREATE STREAM plain (word STRING);

CREATE OR REPLACE STREAM plain (word STRING, n INT);

CREATE OR REPLACE TABLE names AS SELECT id, upper(name) AS name FROM people;

CREATE STREAM cheap WITH (topic='cheap-orders', format='json', partitions=6)
  AS SELECT id, amount FROM orders WHERE amount < 10 PARTITION BY id EMIT CHANGES;

CREATE TABLE per_minute AS
  SELECT user, WINDOWSTART, WINDOWEND AS until, COUNT(*) AS orders
  FROM orders WINDOW TUMBLING (SIZE 1 MINUTE)
  WHERE amount > 0
  GROUP BY user HAVING COUNT(*) > 1 EMIT FINAL;

CREATE TABLE hopping AS
  SELECT o.user, window, sum(o.amount) total
  FROM orders o JOIN users u ON o.user = u.user
  WINDOW HOPPING (SIZE 30 SECONDS, ADVANCE BY 10 SECONDS)
  GROUP BY o.user EMIT CHANGES;

CREATE STREAM settled AS
  SELECT o.id, p.value FROM orders o LEFT OUTER JOIN shop.paid AS p
  WITHIN (0 SECONDS, 10 MINUTES) /* soon */ GRACE PERIOD 5 MINUTES ON o.id = p.id OR
    left(o.id, 1) = p.limit
  WHERE o.amount > 0 PARTITION BY o.id EMIT CHANGES;

SELECT * FROM a JOIN `b c` WITHIN 1 DAY ON a.within = `b c`.id WHERE within > 1
  UNION ALL (SELECT * FROM a x FULL JOIN b y WITHIN 2 HOURS ON x.id = y.id) EMIT CHANGES;

CREATE TABLE IF NOT EXISTS visits AS SELECT user, count(*) n, windowend FROM clicks
  WINDOW SESSION (5 MINUTES) GROUP BY user;

INSERT INTO users VALUES ('ann', 'Ann', NULL), ('bob', 'it''s "Bob"', concat('a', upper('b')));

INSERT INTO numbers (a, `b c`, d) VALUES (-1, 2.50, array(1, 2)), (1e3, true, map('x', -1));

INSERT INTO cheap SELECT id, amount FROM orders WHERE amount = 0 EMIT CHANGES;

INSERT INTO cheap (id) SELECT id FROM orders PARTITION BY upper(id), amount div 2;

SELECT 1;

SELECT * FROM `page-clicks` LIMIT 3;

SELECT o.rowtime, u.name FROM orders o, users u WHERE o.rowtime > now() AND rowtime < u.`rowtime`;

SELECT user, windowstart FROM totals t WHERE t.WINDOWSTART >= '2026-01-01' ORDER BY windowend;

SELECT * FROM orders EMIT FINAL;

SELECT emit FROM orders LIMIT 2 EMIT CHANGES;

SELECT a.name, b.name AS before
  FROM users a JOIN users VERSION AS OF '{"1": 98, "0": 120}' b USING (user),
       users FOR TIMESTAMP AS OF '2026-01-01T00:00:00+02:00' c;

WITH orders AS (SELECT * FROM orders), big AS (SELECT * FROM orders WHERE amount > 10)
SELECT * FROM big JOIN shop.users USING (user);

SELECT /*+ BROADCAST(u) */ count(*) -- all of them; really
  FROM orders /* the ones; of today */ JOIN users u ON true WHERE u.name <> '; -- no comment';

SELECT sum(n) FROM (SELECT user, count(*) n FROM orders WINDOW TUMBLING (SIZE 2 HOURS) GROUP BY user);

SELECT user FROM orders UNION ALL SELECT user FROM users;

(SELECT 1) UNION (SELECT 2);

FROM orders SELECT id;

SHOW STREAMS; SHOW TABLES; LIST TOPICS; show queries;

DESCRIBE orders; DESCRIBE EXTENDED orders; DESCRIBE orders EXTENDED;

EXPLAIN SELECT * FROM orders; EXPLAIN CSAS_enriched-1; EXPLAIN CREATE STREAM a AS SELECT 1;

PRINT orders; PRINT 'page-clicks' FROM BEGINNING LIMIT 3; PRINT my-topic.x INTERVAL 10; PRINT `a`;

DROP STREAM orders; DROP TABLE IF EXISTS `odd name` DELETE TOPIC;

TERMINATE CSAS_enriched-1; TERMINATE ALL;

PAUSE CSAS_ENRICHED_1; PAUSE ALL; RESUME csas_enriched_1; RESUME ALL;

SET 'auto.offset.reset'='earliest'; SET spark.sql.shuffle.partitions = 4; UNSET 'auto.offset.reset';
