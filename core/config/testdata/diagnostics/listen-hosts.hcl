listen {
  hosts = ["noria.example", "https://noria.example:4517", "", "a b"]
}
