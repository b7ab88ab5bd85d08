provider "claude" {
  tokn = "made-up-secret"

  account "work" { token = ["made-up-secret"] }
  account "ci" {
    token = "made-up-secret" + 1
    credential {
      value = "made-up-secret"
    }
  }
}
