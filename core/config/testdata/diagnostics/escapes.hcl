log {
	level = "[2J‮info"
}
