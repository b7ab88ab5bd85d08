// Upstream is Acme: a provider for trying the adapter out. Every token is an account whose week is spent after ten
// requests. The model acme-2 is for tokens of the plan pro.
package main

import (
	"encoding/json"
	"flag"
	"log"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const perRequest = 10 // percent of a week

type upstream struct {
	mu    sync.Mutex // guards used
	used  map[string]int
	reset time.Time
}

func main() {
	address := flag.String("listen", "127.0.0.1:9000", "address to listen on")
	flag.Parse()
	u := &upstream{used: map[string]int{}, reset: time.Now().Add(3 * 24 * time.Hour)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat", u.chat)
	log.Printf("Acme listens on http://%s", *address)
	log.Fatal(http.ListenAndServe(*address, mux))
}

func (u *upstream) chat(w http.ResponseWriter, r *http.Request) {
	token, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !found || !strings.HasPrefix(token, "acme-") {
		answer(w, http.StatusUnauthorized, "error", "token")
		return
	}
	var question struct{ Model string }
	_ = json.NewDecoder(r.Body).Decode(&question) // what is no JSON asks for no model
	name, pro := strings.CutPrefix(strings.TrimPrefix(token, "acme-"), "pro-")
	if question.Model == "acme-2" && !pro {
		answer(w, http.StatusForbidden, "error", "plan")
		return
	}
	used, ok := u.spend(token)
	w.Header().Set("acme-used-percent", strconv.Itoa(used))
	w.Header().Set("acme-reset", strconv.FormatInt(u.reset.Unix(), 10))
	if !ok {
		answer(w, http.StatusTooManyRequests, "error", "quota")
		return
	}
	answer(w, http.StatusOK, "reply", "hello, "+name)
}

// spend books one request, unless the account's week is spent.
func (u *upstream) spend(token string) (used int, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.used[token] >= 100 {
		return 100, false
	}
	u.used[token] += perRequest
	return u.used[token], true
}

func answer(w http.ResponseWriter, status int, key, value string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{key: value})
}
