listen {}
listen {}

provider "claude" {
  account "work" {}
  account "work" {}
}

provider "claude" {}

plugin "acme" {
  path = "plugins/noria-provider-acme"
  dev  = true
}
plugin "acme" {
  path = "plugins/noria-provider-acme"
  dev  = true
}
