package calls_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/noria-dev/noria/core/internal/calls"
)

func TestCloseAwaitsCallsAndCutsLaterOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const takes = time.Minute
		running := &calls.Running{}
		handler := running.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(takes) }))
		call := func() {
			handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
		}
		go call()
		synctest.Wait()
		began := time.Now()
		running.Close()
		if took := time.Since(began); took != takes {
			t.Errorf("closed after %v, want %v", took, takes)
		}
		defer func() {
			if err, ok := recover().(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
				t.Errorf("a call after the end gave %v", err)
			}
		}()
		call()
	})
}
