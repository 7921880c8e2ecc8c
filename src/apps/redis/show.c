/* SPDX-License-Identifier: Apache-2.0 */
/* What a controller is told of a gateway: where clients reach it. */
#include "show.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "uplink/uplink.h"

enum {
	HOST_CHARS = 20,
};

/* Gateways have no names; the machine and the port are known by one only. */
static void name_of(const struct redis_options *o, char out[UP_NAME_MAX + 1])
{
	char host[HOST_CHARS + 1] = "";

	/* Cut or not, it is a name for people. */
	(void)gethostname(host, sizeof(host) - 1);
	for (char *c = host; *c; c++)
		*c = (char)(isalnum((unsigned char)*c)
				    ? tolower((unsigned char)*c)
				    : '-');
	(void)snprintf(out, UP_NAME_MAX + 1, "gw-%s-%d", host,
		       o->port > 0 ? o->port : (int)getpid());
}

struct uplink *gateway_show(const struct daemon *d)
{
	const struct redis_options *o = d->self;
	char name[UP_NAME_MAX + 1], address[CLIENT_ADDRESS_MAX];

	name_of(o, name);
	if (o->port > 0)
		(void)snprintf(address, sizeof(address), "redis://%.100s:%d",
			       o->bind ? o->bind : "127.0.0.1", o->port);
	else
		(void)snprintf(address, sizeof(address), "unix:%.200s",
			       o->unix_path ? o->unix_path : "none");
	return uplink_show(d, &(struct uplink_config){.kind = "gateway",
						      .name = name,
						      .address = address});
}
