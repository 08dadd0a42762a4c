package hadoop

import (
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"
)

// TestDataKeysOfRouters checks that a router of router-based federation, which does not offer
// getDataEncryptionKey, counts as a cluster without a key. Any other failure is an error, and the
// next reader asks again.
func TestDataKeysOfRouters(t *testing.T) {
	var asked int
	answer := error(&fatalAnswer{exception: "java.io.IOException"})
	call := func(method string, _, _ proto.Message) error {
		if asked++; method != "getDataEncryptionKey" {
			t.Errorf("asked for %s", method)
		}
		return answer
	}
	var keys dataKeys
	if _, err := keys.get(call); !errors.Is(err, answer) {
		t.Errorf("error %v", err)
	}
	answer = &fatalAnswer{exception: "java.lang.UnsupportedOperationException",
		message: `Operation "getDataEncryptionKey" is not supported`}
	for range 2 {
		if key, err := keys.get(call); key != nil || err != nil {
			t.Errorf("key %v, error %v", key, err)
		}
	}
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
}
