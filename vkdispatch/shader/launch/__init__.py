"""From a call to a dispatch: sizes, variants, launchers."""
