provider "claude" {
  account "work" {
    home = "~/.claude-work"
  }
}
