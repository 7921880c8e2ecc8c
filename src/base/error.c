/* SPDX-License-Identifier: Apache-2.0 */
/* The table of error codes, and each thread's last error in words. */
#include "error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct meaning {
	int code;
	const char *text;
	const char *advice;
} meanings[] = {
	{EREMOTEIO, "-EREMOTEIO: the remote side failed the operation",
	 "look at the log and the counters of the node that was asked"},
	{EHOSTDOWN, "-EHOSTDOWN: a node of the rack was lost",
	 "start the node again, or refresh the region map and use another"},
	{ESTALE, "-ESTALE: fenced: this client's view of the rack is too old",
	 "refresh the region map and open the handle again"},
	{EDQUOT, "-EDQUOT: the tenant's quota is used up",
	 "free memory of this tenant or raise its quota"},
	{ENOSPC, "-ENOSPC: full: no memory of that kind is left",
	 "free something, add a memory node or ask for less"},
	{EAGAIN, "-EAGAIN: the ring is full for now",
	 "poll for completions, then try again"},
	{ETIMEDOUT, "-ETIMEDOUT: the deadline passed before the answer",
	 "check that the peer runs and is reachable, or allow more time"},
	{ENOMEM, "-ENOMEM: this machine has no memory left for it",
	 "ask for less or raise the process's limits"},
	{EINVAL, "-EINVAL: an argument is not allowed",
	 "compare the arguments with the manual page"},
	{EPERM, "-EPERM: not permitted for this user", "run `aquifer doctor`"},
	{EACCES, "-EACCES: the key, token or file does not allow it",
	 "check the token, the access rights of the region and file modes"},
	{ENOENT, "-ENOENT: there is no such thing",
	 "check the name; `aquifer status` lists what exists"},
	{EEXIST, "-EEXIST: it exists already",
	 "choose another name or remove the old one first"},
	{EBADMSG, "-EBADMSG: malformed data",
	 "check that both sides are of the same version"},
	{EPROTO, "-EPROTO: the peer does not follow the protocol",
	 "check that both sides are of the same version"},
	{EPROTONOSUPPORT, "-EPROTONOSUPPORT: unknown major version",
	 "bring both sides to the same version"},
	{EOPNOTSUPP, "-EOPNOTSUPP: this NIC or node does not offer it",
	 "`aquifer info` shows the capabilities in effect"},
	{EBUSY, "-EBUSY: still in use", "close what depends on it first"},
	{EFAULT, "-EFAULT: the memory is not or no longer mapped",
	 "the owner may have revoked it; register it again"},
	{ECONNREFUSED, "-ECONNREFUSED: nobody listens there",
	 "start the rack with `aquifer up`, or check the address"},
	{ECONNRESET, "-ECONNRESET: the peer closed the connection",
	 "look at the peer's log, then connect again"},
	{EHOSTUNREACH, "-EHOSTUNREACH: there is no way to that address",
	 "check the address and the ports with `aquifer doctor`"},
	{ENODEV, "-ENODEV: there is no such device",
	 "`aquifer info` lists the devices; --nic soft works everywhere"},
	{ENAMETOOLONG, "-ENAMETOOLONG: the name or path is too long",
	 "choose a shorter one"},
	{ERANGE, "-ERANGE: the value is out of range",
	 "the message names what is allowed"},
	{ECANCELED, "-ECANCELED: given up because the object was closed", ""},
};

/* Per thread by contract: see error.h. */
static _Thread_local struct {
	int code;
	char text[ERROR_TEXT_MAX];
} last;

static const struct meaning *find(int err)
{
	int code = abs(err);
	size_t i;

	for (i = 0; i < ARRAY_LEN(meanings); i++)
		if (meanings[i].code == code)
			return &meanings[i];
	return NULL;
}

const char *error_name(int err)
{
	return strerrorname_np(abs(err));
}

const char *error_text(int err)
{
	const struct meaning *m = find(err);
	const char *text;

	if (err == 0)
		return "success";
	if (m)
		return m->text;
	text = strerrordesc_np(abs(err));
	return text ? text : "unknown error";
}

const char *error_advice(int err)
{
	const struct meaning *m = find(err);

	return m ? m->advice : "";
}

int error_set(int err, const char *fmt, ...)
{
	char text[ERROR_TEXT_MAX];
	va_list ap;

	/* By way of a copy: the arguments may point to the former text. */
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	memcpy(last.text, text, sizeof(text));
	last.code = err;
	return err;
}

int error_prefix(int err, const char *fmt, ...)
{
	char text[ERROR_TEXT_MAX];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof(text))
		snprintf(text + n, sizeof(text) - (size_t)n, "%s", last.text);
	memcpy(last.text, text, sizeof(text));
	last.code = err;
	return err;
}

const char *error_last(void)
{
	return last.text;
}

int error_last_code(void)
{
	return last.code;
}

void error_clear(void)
{
	last.code = 0;
	last.text[0] = 0;
}
