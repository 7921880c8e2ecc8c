/* SPDX-License-Identifier: Apache-2.0 */
/* What a daemon tells others about where it is. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon.h"

void daemon_address(const struct daemon *d, char out[DAEMON_ADDRESS_MAX])
{
	const char *listen = d->options.listen;
	const char *scheme = d->options.tls_cert ? "https" : "http";
	const char *port = listen ? strrchr(listen, ':') : NULL;
	char host[80] = "localhost";

	if (!port) {
		(void)snprintf(out, DAEMON_ADDRESS_MAX, "unix:%.240s",
			       d->socket);
	} else if (strncmp(listen, "0.0.0.0:", 8) == 0 ||
		   strncmp(listen, "[::]:", 5) == 0 || port == listen) {
		/* All addresses: others know the machine by its name. */
		(void)gethostname(host, sizeof(host) - 1);
		(void)snprintf(out, DAEMON_ADDRESS_MAX, "%s://%s%.8s", scheme,
			       host, port);
	} else {
		(void)snprintf(out, DAEMON_ADDRESS_MAX, "%s://%.200s", scheme,
			       listen);
	}
}
