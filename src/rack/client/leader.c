/* SPDX-License-Identifier: Apache-2.0 */
/* Whom to ask instead, when a controller says that another one leads (421). */
#include <stdio.h>
#include <string.h>

#include "client.h"

static bool starts(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* A token that was sent secretly does not go on in clear, and a path is one of
 * this machine only if who names it is here, too. */
static bool may_follow(const char *from, const char *to)
{
	if (starts(to, "https://"))
		return true;
	if (starts(to, "http://"))
		return !starts(from, "https://");
	return starts(to, "unix:/") && starts(from, "unix:");
}

bool client_leader_of(const struct client_node *from, const json_t *tree,
		      char out[CLIENT_ADDRESS_MAX])
{
	const char *leader = json_string_value(json_object_get(tree, "leader"));
	bool may = leader && strlen(leader) < CLIENT_ADDRESS_MAX &&
		   strcmp(leader, from->address) != 0 &&
		   may_follow(from->address, leader);

	for (size_t i = 0; may && leader[i]; i++)
		may = leader[i] > ' ' && leader[i] <= '~';
	if (may)
		(void)snprintf(out, CLIENT_ADDRESS_MAX, "%s", leader);
	return may;
}

bool client_reply_leader(const struct client_node *from,
			 const struct client_http_reply *http,
			 char out[CLIENT_ADDRESS_MAX])
{
	json_t *tree = http->status == CLIENT_STATUS_OTHER && http->text
			       ? json_loadb(http->text, http->len_bytes,
					    JSON_REJECT_DUPLICATES, NULL)
			       : NULL;
	bool may = client_leader_of(from, tree, out);

	json_decref(tree);
	return may;
}
