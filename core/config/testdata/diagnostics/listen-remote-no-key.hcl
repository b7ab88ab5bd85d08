listen {
  address      = "[2001:db8::1]:4517"
  allow_remote = true
  auth         = "none"
}
