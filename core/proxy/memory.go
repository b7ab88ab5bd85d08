package proxy

import (
	"sync"
	"sync/atomic"
)

// memory is the budget for what is kept of requests and held of answers, over all of them.
type memory struct{ used atomic.Int64 }

// take reserves n bytes unless that would exceed limit.
func (m *memory) take(n, limit int64) bool {
	if m.used.Add(n) > limit {
		m.used.Add(-n)
		return false
	}
	return true
}

// charge reserves n bytes in any case and reports whether that is within limit.
func (m *memory) charge(n, limit int64) bool { return m.used.Add(n) <= limit }

func (m *memory) give(n int64) { m.used.Add(-n) }

// Sizes of the pieces that bodies are kept in. Most requests fit into one large piece or a few.
const (
	smallPiece = 8 << 10
	largePiece = 128 << 10
	copyPiece  = 32 << 10
)

// piecePool hands out buffers, so that a request allocates none of its own.
type piecePool struct{ small, large, copies sync.Pool }

func newPiecePool() *piecePool {
	p := &piecePool{}
	p.small.New = func() any { return newPiece(smallPiece) }
	p.large.New = func() any { return newPiece(largePiece) }
	p.copies.New = func() any { return newPiece(copyPiece) }
	return p
}

func newPiece(size int) *[]byte {
	b := make([]byte, size)
	return &b
}

func (p *piecePool) get(size int) *[]byte {
	if size <= smallPiece {
		return p.small.Get().(*[]byte)
	}
	return p.large.Get().(*[]byte)
}

func (p *piecePool) put(b *[]byte) {
	if len(*b) == smallPiece {
		p.small.Put(b)
		return
	}
	p.large.Put(b)
}
