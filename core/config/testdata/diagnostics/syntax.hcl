provider "claude" {
  account "work" {
    token = "made-up-secret-of-an-account-0123456789
  }
}
