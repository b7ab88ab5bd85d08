listen {
  allow_remote = "perhaps"
}

limits {
  connections = "many"
}

provider "claude" {
  patience = "soon"
  retries  = "often"
  hosts    = "one.example"
  labels   = ["a"]

  account "work" {
    home    = ["~/.claude"]
    api_key = "maybe"
    models  = [null]
  }
}
