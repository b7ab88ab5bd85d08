package proxy

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// maxWindow of a zstd frame: what RFC 8878 tells every decoder to support.
const maxWindow = 8 << 20

var errEncoding = errors.New("decode: unknown content encoding")

// decoders decode the beginning of bodies, for a look only: what goes over the wire stays as it came. They work in the
// caller's goroutine and are used again.
type decoders struct{ zstd, gzip, brotli sync.Pool }

// reader decodes src. release must be called when it is not needed any more.
func (d *decoders) reader(encoding string, src io.Reader) (r io.Reader, release func(), err error) {
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "", "identity":
		return src, func() {}, nil
	case "zstd":
		return d.zstdReader(src)
	case "gzip", "x-gzip":
		return d.gzipReader(src)
	case "br":
		return d.brotliReader(src)
	}
	return nil, nil, errEncoding
}

func (d *decoders) zstdReader(src io.Reader) (io.Reader, func(), error) {
	decoder, ok := d.zstd.Get().(*zstd.Decoder)
	if !ok {
		var err error
		decoder, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderMaxMemory(maxDecoded))
		if err != nil {
			return nil, nil, err
		}
	}
	release := func() {
		_ = decoder.Reset(nil)
		d.zstd.Put(decoder)
	}
	if err := decoder.Reset(src); err != nil {
		release()
		return nil, nil, err
	}
	return decoder, release, nil
}

func (d *decoders) gzipReader(src io.Reader) (io.Reader, func(), error) {
	decoder, ok := d.gzip.Get().(*gzip.Reader)
	if !ok {
		decoder = new(gzip.Reader)
	}
	release := func() { d.gzip.Put(decoder) }
	if err := decoder.Reset(src); err != nil {
		release()
		return nil, nil, err
	}
	return decoder, release, nil
}

func (d *decoders) brotliReader(src io.Reader) (io.Reader, func(), error) {
	decoder, ok := d.brotli.Get().(*brotli.Reader)
	if !ok {
		decoder = brotli.NewReader(nil)
	}
	release := func() { d.brotli.Put(decoder) }
	if err := decoder.Reset(src); err != nil {
		release()
		return nil, nil, err
	}
	return decoder, release, nil
}

// keptReader reads what was kept of a body.
func (b *body) keptReader() io.Reader {
	var readers []io.Reader
	for piece := range b.each {
		readers = append(readers, bytes.NewReader(piece))
	}
	return io.MultiReader(readers...)
}

// look yields the decoded beginning of the request's body. A body that cannot be decoded yields nothing, or what could
// be decoded.
func (x *exchange) look() func(yield func([]byte) bool) {
	encoding := x.in.Header.Get("Content-Encoding")
	if encoding == "" || strings.EqualFold(encoding, "identity") {
		return x.body.each
	}
	return func(yield func([]byte) bool) {
		decoder, release, err := x.proxy.decoders.reader(encoding, x.body.keptReader())
		if err != nil {
			return
		}
		defer release()
		buffer := x.proxy.buffers.copies.Get().(*[]byte)
		defer x.proxy.buffers.copies.Put(buffer)
		readPieces(decoder, *buffer)(yield)
	}
}
