-- Makes wrk print its outcome as one line that the driver reads; see servers/src/tally.rs.
done = function(summary, latency, requests)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format(
    "tally %.0f %.0f %.3f %.3f %.3f %.0f\n",
    summary.requests, summary.duration,
    latency:percentile(50), latency:percentile(99), latency:percentile(99.9), failed))
end
