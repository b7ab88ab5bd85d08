provider "claude" {
  upstream = env("NORIA_TEST_UNSET")

  account "work" {
    credential { env = "NORIA_TEST_UNSET" }
  }
  # A disabled account needs no credential.
  account "ci" {
    enabled = false
    credential { env = "NORIA_TEST_UNSET" }
  }
}
