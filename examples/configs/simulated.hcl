# Accounts that cost nothing: the provider of "noria serve -dev", with a configuration of one's own.
listen {
  address = "127.0.0.1:4517"
  auth    = "none"
}

provider "simulated" {
  speed   = 60
  latency = "200ms"

  account "first" {
    five_hour_used = 90
    five_hour_left = "10m"
  }
  account "second" {}
}
