listen {
  address = "0.0.0.0:4517"
}

metrics {
  address = "192.0.2.1:9000"
}
