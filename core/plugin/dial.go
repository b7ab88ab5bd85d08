package plugin

import (
	"context"
	"fmt"
	"sync"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/noria-dev/noria/sdk/wire"
)

// dialer connects by go-plugin and keeps hold of the connection: go-plugin forgets to close it when it gives up, and
// opens streams that no context ends.
type dialer struct {
	ctx    context.Context
	cancel context.CancelFunc

	mu   sync.Mutex // guards conn
	conn *grpc.ClientConn
}

func newDialer() *dialer {
	d := &dialer{}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	return d
}

// options bound messages in both directions and see every stream that is opened.
func (d *dialer) options() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(wire.MaxMessage), grpc.MaxCallSendMsgSize(wire.MaxMessage)),
		grpc.WithChainStreamInterceptor(d.intercept),
	}
}

// intercept takes note of the connection, ties go-plugin's own streams to the life of the dialer, and refuses the
// broker: an adapter opens no further channels.
func (d *dialer) intercept(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	d.mu.Lock()
	d.conn = conn
	d.mu.Unlock()
	switch method {
	case "/plugin.GRPCBroker/StartStream":
		return nil, status.Error(codes.Unimplemented, "no broker")
	case "/plugin.GRPCStdio/StreamStdio":
		ctx = d.ctx
	}
	return open(ctx, desc, conn, method, opts...)
}

// dial starts the process, if the client has one to start, and connects to it.
func (d *dialer) dial(client *plugin.Client) (*grpc.ClientConn, error) {
	if _, err := client.Start(); err != nil {
		return nil, err
	}
	protocol, err := client.Client()
	if err != nil {
		return nil, err
	}
	dispensed, err := protocol.Dispense(wire.PluginName)
	if err != nil {
		return nil, err
	}
	conn, ok := dispensed.(*grpc.ClientConn)
	if !ok {
		return nil, fmt.Errorf("dispense adapter: got %T", dispensed)
	}
	return conn, nil
}

// hangUp ends the streams and closes the connection.
func (d *dialer) hangUp() {
	d.cancel()
	d.mu.Lock()
	conn := d.conn
	d.mu.Unlock()
	if conn != nil {
		_ = conn.Close()
	}
}
