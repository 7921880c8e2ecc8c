/* SPDX-License-Identifier: Apache-2.0 */
/* Options of a run by name, as text. */
#ifndef AQ_EDM_OPTIONS_H
#define AQ_EDM_OPTIONS_H

#include <stdio.h>

#include "edm_config.h"

/* Whether there is such an option, and whether it takes a value. */
bool edm_option_known(const char *name, bool *takes_value);
/* -EINVAL, and error_last names the option and the value. The text must stay
 * valid as long as the configuration. */
int edm_option_set(struct edm_config *c, const char *name,
		   const char *value) MUST_CHECK;
void edm_options_help(FILE *f);

#endif
