-- Percentiles of a field by host, without records that do not have the field, or have NaN in it.
-- The condition for the host is a range, as the table is sorted by host: the server reads only its rows.
-- Edit: the field's column, EVENT_FIELD; the texts (an empty one: any); the times in nanoseconds since 1970.
-- For the durations of spans: duration_ns AS wanted_field, and the span's event.
-- Exact percentiles take memory for each value: for billions of records write quantileTDigest in their place.
WITH order_sent_price AS wanted_field,
     '' AS wanted_host, '' AS wanted_program, '' AS wanted_event,
     0 AS wanted_from, 9223372036854775807 AS wanted_until
SELECT
    host,
    count() AS records,
    min(wanted_field) AS least,
    quantileExact(0.5)(wanted_field) AS p50,
    quantileExact(0.9)(wanted_field) AS p90,
    quantileExact(0.99)(wanted_field) AS p99,
    max(wanted_field) AS most
FROM trace_records
WHERE kind = 'record'
  AND wanted_field IS NOT NULL AND wanted_field = wanted_field
  AND host >= wanted_host AND host <= if(wanted_host = '', '\xFF\xFF\xFF\xFF', wanted_host)
  AND (wanted_program = '' OR program = wanted_program)
  AND (wanted_event = '' OR event = wanted_event)
  AND time_ns >= wanted_from AND time_ns <= wanted_until
GROUP BY host
ORDER BY host
