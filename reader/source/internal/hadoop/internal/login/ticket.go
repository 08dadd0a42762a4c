package login

import (
	"time"

	"github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/credentials"
	"github.com/jcmturner/gokrb5/v8/iana/nametype"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// Ticket is a user's ticket for a service.
type Ticket struct {
	Service string              // as the ticket names it, without the realm
	Key     types.EncryptionKey // of the user and the service
	// Client is for the libraries that take a client of gokrb5, not a ticket, for a login at the
	// service. It finds this ticket and no other, never asks a KDC, and Forget leaves it alone.
	Client *client.Client
}

// newTicket returns a ticket with a client that finds it at once. The client that has fetched the
// ticket finds it only from its start time on. If this machine's clock is behind that of the KDC,
// which Kerberos tolerates, that client would fetch another ticket, with another key.
func newTicket(fetcher *client.Client, t messages.Ticket, key types.EncryptionKey) (*Ticket, error) {
	data, err := t.Marshal()
	if err != nil {
		return nil, err
	}
	var cache credentials.CCache
	cache.DefaultPrincipal.Realm, cache.DefaultPrincipal.PrincipalName = fetcher.Credentials.Realm(), fetcher.Credentials.CName()
	entry := &credentials.Credential{Key: key, Ticket: data,
		EndTime: time.Now().AddDate(1, 0, 0)} // gokrb5 does not tell the true one; the service checks that itself
	// gokrb5 accepts no cache without a ticket-granting ticket. It looks for that by the name of the
	// entry, but for others by the name in the ticket.
	entry.Server.PrincipalName = types.NewPrincipalName(nametype.KRB_NT_SRV_INST, "krbtgt/"+cache.DefaultPrincipal.Realm)
	cache.Credentials = []*credentials.Credential{entry}
	cl, err := client.NewFromCCache(&cache, fetcher.Config)
	return &Ticket{Service: t.SName.PrincipalNameString(), Key: key, Client: cl}, err
}
