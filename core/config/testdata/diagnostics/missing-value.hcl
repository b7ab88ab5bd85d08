state {
  dir = env("NORIA_TEST_UNSET")
}

telemetry {
  refresh = file("none")
}
