# The configuration of noria serve -dev: simulated accounts, state that goes with the daemon.
listen {
  address = "127.0.0.1:0"
}
state {
  dir = "state"
}

provider "simulated" {
  speed = 120

  # The week is nearly over: what is left would expire, so new sessions come here first, and it soon runs out.
  account "ada" {
    five_hour_used = 70
    five_hour_left = "90s"
    weekly_used    = 40
  }
  account "ben" {
    five_hour_used = 20
    five_hour_left = "120s"
    weekly_used    = 30
  }
  # Never used: its windows wait for the first request.
  account "cyn" {}
}
