listen {
  address = "localhost"
}

metrics {
  address = "metrics.example:9000"
}
