/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output of a command, built once as a JSON tree and printed as JSON for
 * programs or as indented lines for people; the two cannot disagree.
 */
#ifndef AQ_CLI_REPORT_H
#define AQ_CLI_REPORT_H

#include <jansson.h>

#include "base/base.h"

/* Takes over the caller's reference. 0 or -errno. */
int cli_report_print(json_t *tree, bool as_json) MUST_CHECK;

/* obj[key] = a formatted string. */
void cli_report_set(json_t *obj, const char *key, const char *fmt, ...)
	PRINTF(3, 4);

struct cli_command;
/* What --help of a command says. */
json_t *cli_command_describe(const struct cli_command *cmd);

/* For "s:I" of json_pack: a number of a struct under its own name. */
#define CLI_FIELD(from, field) #field, (json_int_t)(from).field

#endif
