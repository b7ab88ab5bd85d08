package sdk

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"time"
)

const (
	// maxRPCLine bounds one line of a client, maxRPCTotal all lines of one conversation, replies and notifications alike.
	maxRPCLine  = 256 << 10
	maxRPCTotal = 1 << 20
)

// Errors of a conversation.
var (
	ErrRPCTooMuch = errors.New("client sent more than is allowed")
	ErrRPCClosed  = errors.New("client ended the conversation")
)

// RPCError is a client's refusal of one call. Its text comes from outside, often with a body of some upstream in it, and
// is not told by Error; [RPCError.Find] looks for something in it.
type RPCError struct {
	Method string
	Code   int

	message string
}

// Error names the method and the code.
func (e *RPCError) Error() string { return fmt.Sprintf("call %s: error %d", e.Method, e.Code) }

// Find returns the first group of the pattern in the error's text, or "".
func (e *RPCError) Find(pattern *regexp.Regexp) string {
	if found := pattern.FindStringSubmatch(e.message); len(found) > 1 {
		return found[1]
	}
	return ""
}

// RPC is a conversation in JSON lines with an official client over its standard input and output. It is for one
// goroutine.
type RPC struct {
	process *exec.Cmd
	cancel  context.CancelFunc
	ctx     context.Context
	in      io.WriteCloser
	lines   *bufio.Reader
	left    int
	nextID  int
}

// StartRPC starts a client in a process group of its own. When ctx or patience ends, the group is killed and the running
// call returns. Close must be called.
func StartRPC(ctx context.Context, command Command, patience time.Duration) (*RPC, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	process, err := newClient(ctx, command)
	if err != nil {
		cancel()
		return nil, err
	}
	in, err := process.StdinPipe()
	if err != nil {
		cancel()
		return nil, fmt.Errorf("start %s: %w", command.Argv[0], err)
	}
	out, err := process.StdoutPipe()
	if err != nil {
		cancel()
		return nil, fmt.Errorf("start %s: %w", command.Argv[0], err)
	}
	if err := process.Start(); err != nil {
		cancel()
		return nil, fmt.Errorf("start %s: %w", command.Argv[0], err)
	}
	return &RPC{process: process, cancel: cancel, ctx: ctx, in: in, lines: bufio.NewReaderSize(out, maxRPCLine), left: maxRPCTotal}, nil
}

// Call sends a request and waits for the reply with its id; what comes before that is dropped. result may be nil.
// Errors: *RPCError, [ErrRPCTooMuch], [ErrRPCClosed], or the end of ctx.
func (r *RPC) Call(method string, params, result any) error {
	r.nextID++
	id := r.nextID
	if err := r.send(rpcRequest{ID: &id, Method: method, Params: params}); err != nil {
		return err
	}
	for {
		reply, err := r.receive(method)
		if err != nil {
			return err
		}
		if reply.Method != "" || reply.ID != id {
			continue
		}
		if reply.Error != nil {
			return &RPCError{Method: method, Code: reply.Error.Code, message: reply.Error.Message}
		}
		if result != nil && json.Unmarshal(reply.Result, result) != nil {
			return fmt.Errorf("call %s: not the result that was expected", method)
		}
		return nil
	}
}

// Notify sends a message that has no reply.
func (r *RPC) Notify(method string, params any) error {
	return r.send(rpcRequest{Method: method, Params: params})
}

// Close ends the conversation and the client, with all its children.
func (r *RPC) Close() {
	_ = r.in.Close()
	// A client with a call pending does not leave by itself.
	leave := time.AfterFunc(time.Second, r.cancel)
	_ = r.process.Wait()
	leave.Stop()
	r.cancel()
	endGroup(r.process)
}

type rpcRequest struct {
	ID     *int   `json:"id,omitempty"`
	Method string `json:"method"`
	Params any    `json:"params,omitempty"`
}

type rpcReply struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

func (r *RPC) send(request rpcRequest) error {
	line, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("call %s: %w", request.Method, err)
	}
	if _, err := r.in.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("call %s: %w", request.Method, r.ended())
	}
	return nil
}

// receive reads the next line that is a message.
func (r *RPC) receive(method string) (rpcReply, error) {
	for {
		line, err := r.lines.ReadSlice('\n')
		r.left -= len(line)
		switch {
		case errors.Is(err, bufio.ErrBufferFull) || r.left < 0:
			r.cancel()
			return rpcReply{}, fmt.Errorf("call %s: %w", method, ErrRPCTooMuch)
		case err != nil:
			return rpcReply{}, fmt.Errorf("call %s: %w", method, r.ended())
		}
		var reply rpcReply
		if json.Unmarshal(line, &reply) == nil {
			return reply, nil
		}
	}
}

// ended says why nothing more comes.
func (r *RPC) ended() error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	return ErrRPCClosed
}
