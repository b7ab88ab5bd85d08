plugin "acme" {
  path = "plugins/noria-provider-acme"
  dev  = true
}

provider "acme" {
  account "a" {
    token_fil = "~/.acme/a"
  }
}
