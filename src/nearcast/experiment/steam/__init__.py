"""The evaluation of STEAM (5): its middleware on radios that hear 200 m far and no farther, as the paper emulated them."""
