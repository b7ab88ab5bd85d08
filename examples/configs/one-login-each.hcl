# The least there is: one login of each official client, everything else by default.
provider "claude" {
  account "main" { home = "~/.claude" }
}

provider "codex" {
  account "main" { home = "~/.codex" }
}
