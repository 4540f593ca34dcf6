-- shop.sql: moldau sql -f shop.sql
CREATE STREAM orders (id STRING KEY, user STRING, amount DOUBLE, at TIMESTAMP)
  WITH (topic='orders', format='json', event_time='at', watermark='10 seconds');
CREATE TABLE users (user STRING PRIMARY KEY, name STRING, city STRING)
  WITH (topic='users', format='json');
CREATE STREAM enriched AS SELECT o.id, o.amount, u.city
  FROM orders o LEFT JOIN users u ON o.user = u.user;
CREATE TABLE totals AS SELECT user, window, sum(amount) AS total
  FROM orders GROUP BY user, window(at, '1 minute') EMIT FINAL;
SELECT * FROM totals WHERE user = 'ann';        -- pull: answers and ends
SELECT * FROM enriched EMIT CHANGES LIMIT 5;    -- push
SELECT * FROM users TIMESTAMP AS OF '2026-01-01 00:00:00';
