# A build machine: a token from the environment, a log for machines, metrics, short patience at the end.
listen {
  address = "127.0.0.1:4600"
}

state {
  dir  = "/var/lib/noria"
  idle = "72h"
}

log {
  level  = "warn"
  format = "json"
}

metrics {
  address = "127.0.0.1:9517"
}

limits {
  drain = "10s"
}

provider "claude" {
  account "ci" {
    credential { env = "NORIA_CLAUDE_TOKEN" }
  }
}
