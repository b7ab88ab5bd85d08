telemetry {
  refresh = "10s"
}

placement {
  fit = 1.5
}

state {
  max_bindings = 0
  idle         = "1m"
}

limits {
  body          = "64MB"
  replay_memory = "1KiB"
  connections   = 0
  header_time   = "0s"
  hold_time     = "290s"
  drain         = "-1s"
}

log {
  level  = "warning"
  format = "xml"
}
