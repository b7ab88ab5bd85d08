provider "healthz" {}
provider "Claude" {}
provider "claude" {
  account "a b" {}
  account "none" {
    overage = "avoided"
    models  = [""]
    credential {
      env  = "not a name"
      file = "out-of-range.hcl"
    }
  }
}
