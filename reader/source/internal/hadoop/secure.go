package hadoop

import (
	"encoding/base64"
	"fmt"
	"net"

	"github.com/colinmarc/hdfs/v2"

	"aibox/reader/source/internal/hadoop/internal/sasl"
)

// secure performs the handshake with the DataNode of a block at port, if it requires one.
func (c *Cluster) secure(conn net.Conn, b *block, port int) (*sasl.Conn, error) {
	if least, wanted := c.leastLevel(b, port); wanted {
		return sasl.Handshake(conn, b.login(), least)
	}
	return sasl.Unprotected(conn), nil
}

// leastLevel returns whether a DataNode at port requires a handshake, and the weakest level of
// protection that the configuration accepts. As in Hadoop, a DataNode on a privileged port is
// trusted without a handshake, unless all transfers are encrypted.
func (c *Cluster) leastLevel(b *block, port int) (least sasl.Level, wanted bool) {
	switch {
	case b.key != nil:
		return sasl.Encrypted, true
	case c.krb == nil || c.conf.protection == "" || port < 1024:
		return "", false
	case c.conf.protection == hdfs.DataTransferProtectionPrivacy:
		return sasl.Encrypted, true
	case c.conf.protection == hdfs.DataTransferProtectionIntegrity:
		return sasl.Signed, true
	}
	return sasl.Authenticated, true
}

// login returns the credentials for the handshake: the block's token, or the NameNode's key if all
// transfers are encrypted.
func (b *block) login() sasl.Login {
	encode := base64.StdEncoding.EncodeToString
	if k := b.key; k != nil {
		return sasl.Login{User: fmt.Sprintf("%d %s %s", k.id, k.pool, encode(k.nonce)), Password: encode(k.secret)}
	}
	token := b.located.In("blockToken")
	return sasl.Login{User: encode(token.Bytes("identifier")), Password: encode(token.Bytes("password"))}
}
