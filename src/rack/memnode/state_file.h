/* SPDX-License-Identifier: Apache-2.0 */
/* Files that a node reads again when it is started anew. */
#ifndef AQ_MEMNODE_STATE_FILE_H
#define AQ_MEMNODE_STATE_FILE_H

#include "base/base.h"

/* The file is the former or the new text, whole, whatever is killed or loses
 * power meanwhile; the new one, on the disk, after success. 0 or -errno. */
int state_file_replace(const char *path, const char *text) MUST_CHECK;

#endif
