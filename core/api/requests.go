package api

// Bodies of calls that have no type of their own in the interface.
type (
	accountRequest struct {
		Account string `json:"account"`
	}
	accountsRequest struct {
		Accounts []string `json:"accounts"`
	}
	subjectRequest struct {
		Subject string `json:"subject"`
	}
	moveRequest struct {
		Subject string `json:"subject"`
		Account string `json:"account"`
	}
)
