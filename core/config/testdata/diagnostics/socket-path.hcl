state {
  dir = "/srv/a-long-name/a-long-name/a-long-name/a-long-name/a-long-name/a-long-name/a-long-name/noria"
}
