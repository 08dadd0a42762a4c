// Package kms asks Hadoop's key management servers (KMS) for the keys of files in encryption zones.
//
// The NameNode stores with each file its key, encrypted by a key of the zone that only the KMS
// knows. Who reads or writes the file sends that to a KMS, which decrypts it if its access control
// lists allow that to the user:
//
//	POST /kms/v1/keyversion/VERSION/_eek?eek_op=decrypt  {"name": KEY, "iv": …, "material": …}
//	200 {"material": …}  or  4xx, 5xx {"RemoteException": {"message": …, "exception": …}}
//
// Bytes are in base64 for URLs. Users name themselves in the URL (user.name), or show a Kerberos
// ticket in a header (SPNEGO); both is up to the caller.
package kms
