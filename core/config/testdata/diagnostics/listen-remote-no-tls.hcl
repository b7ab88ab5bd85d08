listen {
  address      = "192.0.2.1:4517"
  allow_remote = true
}
