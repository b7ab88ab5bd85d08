provider "claud" {
  account "work" {}
}

provider "other" {
  plugin = "missing"
}
