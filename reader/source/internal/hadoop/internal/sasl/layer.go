package sasl

import (
	"bufio"
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/md5"
	"crypto/rc4"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"

	"aibox/reader/source/internal/hadoop/internal/wire"
)

// layers returns the layers that protect the data from and to the DataNode.
func (d *digest) layers() (in, out *layer, err error) {
	secret := d.a1()
	in, out = &layer{}, &layer{}
	in.mac = hmac.New(md5.New, []byte(sum(secret, "Digest session key to server-to-client signing key magic constant")))
	out.mac = hmac.New(md5.New, []byte(sum(secret, "Digest session key to client-to-server signing key magic constant")))
	if d.level == Encrypted {
		secret = secret[:map[string]int{"rc4": 16, "rc4-56": 7, "rc4-40": 5}[d.cipher]]
		if in.rc4, err = rc4.NewCipher([]byte(sum(secret, "Digest H(A1) to server-to-client sealing key magic constant"))); err != nil {
			return nil, nil, err
		}
		if out.rc4, err = rc4.NewCipher([]byte(sum(secret, "Digest H(A1) to client-to-server sealing key magic constant"))); err != nil {
			return nil, nil, err
		}
	}
	return in, out, nil
}

// layer signs, and with a cipher encrypts, one direction of a connection.
// What it sends is cut into frames:
//
//	length of the rest, 4 bytes | message | MAC, 10 bytes | 00 01 | number of the frame, 4 bytes
//	                            '------ encrypted -------'
type layer struct {
	mac    hash.Hash
	rc4    *rc4.Cipher // nil: signed only
	number uint32
}

const (
	macBytes      = 10
	trailerBytes  = 6
	maxFrameBytes = 1 << 20 // a DataNode sends at most 64 KiB
)

var version = []byte{0, 1}

func (l *layer) sign(msg []byte) []byte {
	l.mac.Reset()
	_, _ = l.mac.Write(binary.BigEndian.AppendUint32(nil, l.number)) // a hash never fails
	_, _ = l.mac.Write(msg)
	return l.mac.Sum(nil)[:macBytes]
}

func (l *layer) seal(msg []byte) []byte {
	frame := binary.BigEndian.AppendUint32(nil, uint32(len(msg)+macBytes+trailerBytes))
	frame = append(append(frame, msg...), l.sign(msg)...)
	if l.rc4 != nil {
		l.rc4.XORKeyStream(frame[4:], frame[4:])
	}
	frame = binary.BigEndian.AppendUint32(append(frame, version...), l.number)
	l.number++
	return frame
}

// open verifies a frame, which is given without its length, and returns its message. It decrypts
// the frame in place.
func (l *layer) open(frame []byte) ([]byte, error) {
	n := len(frame) - trailerBytes
	if n < macBytes {
		return nil, errors.New("a SASL frame is too short")
	}
	if l.rc4 != nil {
		l.rc4.XORKeyStream(frame[:n], frame[:n])
	}
	msg, mac, trailer := frame[:n-macBytes], frame[n-macBytes:n], frame[n:]
	if !hmac.Equal(mac, l.sign(msg)) || !bytes.Equal(trailer[:2], version) || binary.BigEndian.Uint32(trailer[2:]) != l.number {
		return nil, errors.New("a SASL frame has a wrong signature")
	}
	l.number++
	return msg, nil
}

// reader returns the messages inside the frames. If a deadline passes in the middle
// of a frame, the next call reads the rest of it.
type reader struct {
	r     *bufio.Reader
	layer *layer
	frame []byte // nil: its length is being read
	room  []byte // memory for frames
	have  int    // bytes of frame, or of its length, read so far
	head  [4]byte
	msg   []byte // the part of the last frame's message that has not been returned yet
}

func (s *reader) Read(p []byte) (int, error) {
	for len(s.msg) == 0 {
		for s.frame == nil {
			n, err := s.r.Read(s.head[s.have:])
			if s.have += n; err != nil {
				return 0, err
			}
			if s.have == len(s.head) {
				size := binary.BigEndian.Uint32(s.head[:])
				if size > maxFrameBytes {
					return 0, fmt.Errorf("a SASL frame says that it has %d bytes, which is not a valid length", size)
				}
				if s.room == nil || int(size) > len(s.room) {
					s.room = make([]byte, max(size, 64<<10))
				}
				s.frame, s.have = s.room[:size], 0
			}
		}
		for s.have < len(s.frame) {
			n, err := s.r.Read(s.frame[s.have:])
			if s.have += n; err != nil {
				return 0, err
			}
		}
		msg, err := s.layer.open(s.frame)
		if err != nil {
			return 0, err
		}
		s.msg, s.frame, s.have = msg, nil, 0
	}
	n := copy(p, s.msg)
	s.msg = s.msg[n:]
	return n, nil
}

// aesConn continues with the AES keys that the DataNode chose.
func aesConn(r io.Reader, in *layer, suite wire.Message) (*Conn, error) {
	stream := func(key, iv string) (cipher.Stream, error) {
		secret, err := in.open(bytes.Clone(suite.Bytes(key)))
		if err != nil {
			return nil, err
		}
		block, err := aes.NewCipher(secret)
		if err != nil {
			return nil, err
		}
		if len(suite.Bytes(iv)) != aes.BlockSize {
			return nil, errors.New("the AES counter has the wrong length")
		}
		return cipher.NewCTR(block, suite.Bytes(iv)), nil
	}
	// The order matters, since each key is a frame of its own.
	enc, err := stream("inKey", "inIv")
	if err != nil {
		return nil, err
	}
	dec, err := stream("outKey", "outIv")
	if err != nil {
		return nil, err
	}
	return &Conn{
		R:    cipher.StreamReader{S: dec, R: r},
		Seal: func(b []byte) []byte { c := bytes.Clone(b); enc.XORKeyStream(c, c); return c },
	}, nil
}
