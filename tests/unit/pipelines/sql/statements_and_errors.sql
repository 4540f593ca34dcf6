-- Declarations.
CREATE STREAM orders (id STRING KEY, user STRING, amount DOUBLE, at TIMESTAMP)
  WITH (topic='orders', event_time='at', watermark='10 seconds');
CREATE TABLE users (user STRING PRIMARY KEY, name STRING) WITH (topic='users', partitions=3);
CREATE STREAM orders (id STRING) WITH (topic='orders');
CREATE TABLE IF NOT EXISTS orders (id STRING PRIMARY KEY) WITH (topic='orders');
CREATE STREAM IF NOT EXISTS ORDERS (id STRING) WITH (topic='orders');
CREATE STREAM lost (id STRING) WITH (topic='no-such-topic');

-- Queries that run for ever.
CREATE STREAM enriched AS SELECT o.id, o.amount FROM orders o;
CREATE TABLE totals AS SELECT user, count(*) AS n FROM orders GROUP BY user EMIT CHANGES;
INSERT INTO enriched SELECT id, amount FROM orders;
CREATE STREAM enriched AS SELECT * FROM orders;
CREATE STREAM copy AS SELECT * FROM nothing;
INSERT INTO totals SELECT * FROM orders;
INSERT INTO nowhere SELECT * FROM orders;

-- Values.
INSERT INTO users VALUES ('ann', 'Ann'), ('bob', NULL);
INSERT INTO orders (id, amount, at) VALUES ('1', 2.5, '2026-01-01 00:00:00');
INSERT INTO orders (id, amount) VALUES ('1', 'much');
INSERT INTO orders (id, amont) VALUES ('1', 2);
INSERT INTO users (name) VALUES ('nobody');
INSERT INTO user VALUES ('ann', 'Ann');

-- Questions.
SELECT * FROM orders;
SELECT * FROM orders EMIT CHANGES LIMIT 3;
PRINT orders;
EXPLAIN SELECT * FROM orders;
EXPLAIN CSAS_ENRICHED_1;
EXPLAIN CSAS_ENRICHED;
EXPLAIN INSERT INTO users VALUES ('ann', 'Ann');
DESCRIBE user;

-- The session.
SET 'auto.offset.reset'='earliest';
UNSET 'auto.offset.reset';
SET 'auto.offset.reset'='middle';
SET 'auto.ofset.reset'='earliest';
SET 'x'='y';
UNSET 'x';

-- The end.
DROP STREAM orders;
DROP STREAM enriched;
DROP TABLE enriched;
DROP STREAM IF EXISTS nothing;
DROP STREAM nothing;
TERMINATE INSERT_ENRICHED_3;
TERMINATE INSERT_ENRICHED_3;
TERMINATE INSERT_ENRICHED_9;
INSERT INTO enriched SELECT id, amount FROM orders;
TERMINATE ALL;
TERMINATE ALL;
CREATE STREAM IF NOT EXISTS enriched AS SELECT o.id, o.amount FROM orders o;
CREATE TABLE IF NOT EXISTS totals AS SELECT something FROM another;
DROP STREAM enriched;
CREATE STREAM again (id STRING) WITH (topic='totals');
DROP TABLE totals DELETE TOPIC;
DROP STREAM again;
DROP TABLE totals DELETE TOPIC;
DROP STREAM orders;
