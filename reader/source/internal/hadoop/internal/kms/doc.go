// Package kms asks Hadoop's key management servers (KMS) for the keys of files in encryption zones.
//
// The NameNode stores the key of each file, encrypted with a key of the zone that only the KMS
// knows. A client that reads or writes the file sends the encrypted key to a KMS, which decrypts it
// if its access control lists allow this to the user:
//
//	POST /kms/v1/keyversion/VERSION/_eek?eek_op=decrypt  {"name": KEY, "iv": …, "material": …}
//	200 {"material": …}  or  4xx, 5xx {"RemoteException": {"message": …, "exception": …}}
//
// Binary values are in base64url. Users identify themselves by a name in the URL (user.name) or a
// Kerberos ticket in a header (SPNEGO); the caller adds either.
package kms
