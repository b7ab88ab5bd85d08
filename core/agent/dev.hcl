# The configuration of noria serve -dev: simulated accounts, state that goes with the daemon.
listen {
  address = "127.0.0.1:0"
}
state {
  dir = "state"
}

# An hour of these accounts passes in a minute.
provider "simulated" {
  # Nearly used up, with a reset soon: the first session comes here, and a while later it has to move.
  account "amber" {
    five_hour_used = 78
    five_hour_left = "90s"
    weekly_used    = 1
  }
  account "birch" {
    weekly_used = 20
  }
  account "cedar" {
    weekly_used = 20
  }
}
