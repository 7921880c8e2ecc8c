/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer dashboard`: an address at which a browser may look at the rack. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "cli.h"
#include "cli_admin.h"
#include "cli_report.h"

struct dashboard_args {
	bool tenant;
	bool json;
};

const struct opt cmd_dashboard_options[] = {
	OPT_FLAG(struct dashboard_args, tenant, "tenant",
		 "only what the tenant of the own token may see"),
	OPT_FLAG(struct dashboard_args, json, "json", "print JSON"),
	OPT_END,
};

/* Where a browser finds the controller: a port that it has opened on this
 * machine, or its own address. -EPROTO. */
static int address_of(const struct cli_admin *m, const json_t *answer,
		      char out[CLIENT_ADDRESS_MAX + 160])
{
	const char *code = json_string_value(json_object_get(answer, "code"));
	const char *base = m->rack.node[0].address;
	uint64_t port = 0;
	int err = client_json_u64(answer, "port", UINT16_MAX, &port);
	int len = (int)strlen(base);

	if (!code || strlen(code) > 128 ||
	    (err && strncmp(base, "unix:", 5) == 0))
		return error_set(-EPROTO,
				 "the controller %s names no code or "
				 "no port",
				 m->rack.node[0].name);
	if (!err)
		(void)snprintf(out, CLIENT_ADDRESS_MAX + 160,
			       "http://127.0.0.1:%u/#/overview?code=%s",
			       (unsigned)port, code);
	else
		(void)snprintf(out, CLIENT_ADDRESS_MAX + 160,
			       "%.*s/#/overview?code=%s",
			       len && base[len - 1] == '/' ? len - 1 : len,
			       base, code);
	return 0;
}

static int print(const struct dashboard_args *a, const struct cli_admin *m,
		 const json_t *answer)
{
	const char *sees = json_string_value(json_object_get(answer, "sees"));
	json_int_t seconds =
		json_integer_value(json_object_get(answer, "seconds"));
	char address[CLIENT_ADDRESS_MAX + 160];
	int err = address_of(m, answer, address);

	if (err)
		return err;
	if (a->json)
		return cli_report_print(
			json_pack("{s:s, s:I, s:s, s:s}", "address", address,
				  "seconds", seconds, "sees", sees ? sees : "",
				  "controller", m->rack.node[0].name),
			true);
	printf("%s\n", address);
	printf("works once, within %lld s, and may only look\n",
	       (long long)seconds);
	return 0;
}

int cmd_dashboard(const struct cli_command *self, int argc, char **argv)
{
	struct dashboard_args a = {0};
	struct cli_admin m;
	json_t *answer = NULL;
	int err, code = cli_parse(self, argc, argv, OPT_WORDS_NONE, &a, NULL);

	if (code != CLI_GO)
		return code;
	if (cli_admin_open_control(&m, a.tenant ? RACK_TOKEN_DEFAULT
						: RACK_TOKEN_ADMIN))
		return CLI_FAILED;
	err = cli_admin_ask(&m, 0, "POST", "/v1/look", NULL, &answer);
	if (!err)
		err = print(&a, &m, answer);
	if (err)
		cli_error("%s", error_last());
	json_decref(answer);
	cli_admin_close(&m);
	return err ? CLI_FAILED : CLI_OK;
}
