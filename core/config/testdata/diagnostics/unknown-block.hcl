listn {
  address = "127.0.0.1:4517"
}

provider "claude" {
  acount "work" {}
}
