// Package login logs in to Kerberos, for calls of NameNodes and KMS: with a key table, or with the
// ticket cache that kinit writes (login.go). Each login at a service gets a ticket of its own to use
// (ticket.go). krb5conf.go reads krb5.conf and the files that it includes.
package login
