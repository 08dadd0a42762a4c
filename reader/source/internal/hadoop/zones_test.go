package hadoop

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"aibox/reader/source/internal/fsys"
	"aibox/reader/source/internal/hadoop/internal/wire"
)

// TestFileKey checks that encrypting from an offset on gives the same bytes as encrypting the whole
// file, also if the counter overflows, and that sections of a file are encrypted like the whole.
func TestFileKey(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	text := logText(1000)
	for _, size := range []int{16, 24, 32} {
		for _, iv := range []string{strings.Repeat("a", 16), strings.Repeat("\xff", 15) + "\xfe", "01234567" + strings.Repeat("\xff", 8)} {
			block, err := aes.NewCipher([]byte(strings.Repeat("k", size)))
			if err != nil {
				t.Fatal(err)
			}
			want := make([]byte, len(text))
			cipher.NewCTR(block, []byte(iv)).XORKeyStream(want, text)
			key := &fileKey{block: block, iv: []byte(iv)}
			file := &encrypted{bytes.NewReader(text), key}
			for range 100 {
				from := rng.IntN(len(text))
				got := make([]byte, rng.IntN(len(text)-from))
				key.at(int64(from)).XORKeyStream(got, text[from:from+len(got)])
				if !bytes.Equal(got, want[from:from+len(got)]) {
					t.Fatalf("%d bytes at %d differ", len(got), from)
				}
				if section, err := io.ReadAll(io.NewSectionReader(file, int64(from), int64(len(got)))); err != nil || !bytes.Equal(section, got) {
					t.Fatalf("the section of %d bytes at %d: %v", len(got), from, err)
				}
			}
		}
	}
}

// A cipher that is not supported is refused before a KMS is asked.
func TestOtherCipher(t *testing.T) {
	c, err := New("localhost:1", &Options{ConfDir: confFiles(t, "dfs.encryption.key.provider.uri", "kms://http@localhost:1/kms")}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	file := wire.New("HdfsFileStatusProto")
	if z := zoneOf(file); z != nil {
		t.Errorf("a file in no zone: %+v", z)
	}
	file.Make("fileEncryptionInfo").Set("suite", protoreflect.EnumNumber(3)).Set("keyName", "clicks").Set("iv", make([]byte, aes.BlockSize))
	r := retrier{c: c, op: "open", path: "/zone/a"}
	_, err = c.fileKey(context.Background(), zoneOf(file))
	wantError(t, r.wait(context.Background(), err), fsys.ErrUnsupported, atOnce, time.Now(), "/zone/a", `"clicks"`, "SM4/CTR/NoPadding")
}
