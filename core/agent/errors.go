package agent

// RefusedStartError is why a daemon does not start before a person has put something right: an address, a directory, a file,
// another daemon.
type RefusedStartError struct {
	Err error
	// Remedy says what to do.
	Remedy string
}

func (e *RefusedStartError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *RefusedStartError) Unwrap() error { return e.Err }

// refuseStart gives an error its remedy; nil stays nil.
func refuseStart(err error, remedy string) error {
	if err == nil {
		return nil
	}
	return &RefusedStartError{Err: err, Remedy: remedy}
}
