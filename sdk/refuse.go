package sdk

// RefusalError says that an account has no lease to give, or that a call about it cannot be answered, and why.
type RefusalError struct {
	Code RefusalCode
	// Reason is one sentence with the remedy, for the user. It holds no credential and no text from outside.
	Reason string
}

// Error gives the reason.
func (e *RefusalError) Error() string { return "refused: " + e.Reason }

// Refuse makes the error with which Lease says that nothing is wrong with the adapter and the account cannot be used:
// it is signed out, its login expired, or the login is not of the kind that may be used. From any other method it tells the
// user why the call cannot be answered; its code means nothing there. The user reads reason as it is.
func Refuse(code RefusalCode, reason string) error {
	return &RefusalError{Code: code, Reason: reason}
}
